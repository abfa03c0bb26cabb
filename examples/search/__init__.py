"""Two hundred documents ranked within 20 ms: cheap features for all, expensive ones for those that may come first."""
