"""Predictions of whole files in bounded memory, in one process, several, or on a cluster."""

from miserly.batch._blocks import FileBlocks
from miserly.batch._predict import BatchResult, FileTask, open_output, predict_file
from miserly.batch._predict import absent_columns as absent_columns
from miserly.batch._predict import answers as answers
from miserly.batch._predict import compares_documents as compares_documents

__all__ = ["BatchResult", "FileBlocks", "FileTask", "open_output", "predict_file"]
