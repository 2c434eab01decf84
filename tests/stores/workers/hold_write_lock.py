"""Holds the write lock of a store's file until told to let go: ``hold_write_lock.py FILE``."""

import sqlite3
import sys

connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
sys.stdout.write("held\n")
sys.stdin.readline()
connection.execute("ROLLBACK")
connection.close()
