"""What the objects of users lead to: configuration, flags, Pod settings and findings; pure.

May import: profiles, extenders, operatorsettings and below. May be imported by: controlplane,
secondary, loadpolicy and above.
"""
