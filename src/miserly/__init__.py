"""Machine learning under a test-time budget."""
