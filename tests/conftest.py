import os

os.environ["SCIPY_ARRAY_API"] = "1"
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # tests run on as many processes as there are cores
