SELECT S1.ItemNo, S1.TimeStamp, S2.TimeStamp
FROM Store1 S1, Store2 S2
WHERE S1.ItemNo = S2.ItemNo
WITH PREFERENCE desc SUMMARY.Estimate.Count(S1.ItemNo), SUMMARY.Estimate.Count(S2.ItemNo)
FADE FACTOR 0.8
WINDOW 1 MINUTE
