SELECT * FROM store1 /* WITH PREFERENCE */ WITH -- first
PREFERENCE desc /* most */ SUMMARY.Estimate.Count(itemno) -- end
