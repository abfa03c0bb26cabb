"""Which patients need which tests: blood values that share one draw, an index that is computed from two of them."""
