"""The program that reads the configuration file of the scheduler before the operator, once."""
