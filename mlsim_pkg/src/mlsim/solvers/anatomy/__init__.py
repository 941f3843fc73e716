"""What each layer of a network computes, holds and moves."""
