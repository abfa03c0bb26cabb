import os

os.environ["SCIPY_ARRAY_API"] = "1"
