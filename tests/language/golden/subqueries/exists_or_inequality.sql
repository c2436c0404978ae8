SELECT carrier FROM flights f WHERE delay > 60 OR EXISTS (SELECT 1 FROM weather w WHERE w.ts < f.ts)
