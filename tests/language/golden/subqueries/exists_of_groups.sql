SELECT carrier FROM flights f WHERE EXISTS (SELECT day FROM weather w WHERE w.dest = f.dest GROUP BY day HAVING COUNT(*) > 2)
