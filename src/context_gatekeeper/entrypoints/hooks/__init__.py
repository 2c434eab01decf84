"""What `cgk hook` answers to each event of a client; standard library only until an event needs more."""
