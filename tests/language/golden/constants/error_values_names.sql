SELECT 1 FROM (VALUES (1)) v (a, b)
