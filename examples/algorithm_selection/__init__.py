"""Which solver to run on which instance, when the features of an instance take seconds that differ from row to row."""
