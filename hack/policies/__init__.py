"""The admission policies of deploy/admission, made from the tables of the operator's own check."""
