"""The program that reads, once, the configuration file of the scheduler to adopt."""
