"""Two hundred documents ranked within 20 ms: a cheap look at all of them, a dear one at those that may come first."""
