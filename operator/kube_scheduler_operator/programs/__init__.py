"""The programs beside the operator, one package each."""
