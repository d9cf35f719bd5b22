"""Generates the policies of deploy/admission from the tables of the operator's own validation."""
