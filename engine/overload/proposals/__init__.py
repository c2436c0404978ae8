"""Static approximation: other texts of a query that use fewer resources, for the client to approve (STREAM,
section 5.1). One rule a file; :mod:`.propose` tries them all.
"""
