"""SQL text to bound statements, and bound expressions to values. ``statements.parse`` and
``evaluate.evaluate``.
"""
