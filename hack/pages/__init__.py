"""Pages of docs/ that are made from a running cluster, so that they cannot say what is not so.

What turns observations into text is pure and has unit tests; what runs a cluster is in
`kubectl_scheduler` and `openshift`, for hack/cli-docs and hack/openshift-docs. Only the standard
library is used, as by the sandbox.
"""
