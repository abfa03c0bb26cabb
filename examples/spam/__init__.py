"""Spam or not, for as little CPU as possible: extractors over raw mails, their measured prices, a plan that buys."""
