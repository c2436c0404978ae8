SELECT s.v, u.v FROM s, u WHERE s.k = u.k
WITH PREFERENCE weighted of_s.Estimate.Count(s.k) * 2, SUMMARY.Estimate.Frequency(u.k)
