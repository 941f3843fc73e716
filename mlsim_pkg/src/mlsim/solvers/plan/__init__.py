"""Which machines, how many and in which layout serve so many requests in time, at what cost."""
