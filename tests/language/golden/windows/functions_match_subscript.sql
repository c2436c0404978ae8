SELECT (regexp_match(dest, '(a)(b)'))[2] AS end FROM flights WHERE REGEXP_MATCH(dest, '(a)')[1] IS NOT NULL
