"""Recognition services that are paid by the call: a certified agreement with the best one, and a spending cap."""
