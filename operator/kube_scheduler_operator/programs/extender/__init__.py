"""The program that kube-scheduler asks: which nodes will not do, and which are the best?"""
