"""What others measured, each row with its source; none of it by this project."""
