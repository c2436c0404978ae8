SELECT word FROM parcels, UNNEST(tags) AS t (tag), UNNEST(STRING_TO_ARRAY(t.tag, ' ')) AS w (word)
