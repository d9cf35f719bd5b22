"""The command line: one module for each command, one package for each topic that they share."""
