SELECT s.k, s.v, u.v FROM s, u WHERE s.k = u.k
WITH PREFERENCE desc SUMMARY.Estimate.Count(s.k), SUMMARY.Estimate.Count(u.k) WINDOW 2 SECONDS
