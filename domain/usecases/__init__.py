"""What the user can have done, one class per deed."""
