// Places for streams: a browser has six connections to one address, and with a stream on each of them nothing else is answered.

/** Streams of all windows of this browser; the connection that is left is for requests. */
const PLACES = 5;

/** Why a stream has to wait. */
export const NO_PLACE = {
  code: "too_many_windows",
  message: "other windows of this browser take all the connections it has for this page",
  hint: "close one of them, or put it in a tab that is not seen: this one then follows by itself",
};

/** @param {number} place @returns {Promise<(() => void)|null>} */
const taken = (place) =>
  new Promise((resolve) => {
    const hold = (lock) => lock && new Promise((leave) => resolve(() => leave(undefined)));
    navigator.locks
      .request(`stream ${place}`, { ifAvailable: true }, hold)
      .then(() => resolve(null))
      .catch(() => resolve(null));
  });

/**
 * Take a place among the streams of all windows: what gives it back, or null where none is free. Windows know of each other on
 * this machine and over HTTPS alone; elsewhere there always is one.
 * @returns {Promise<(() => void)|null>}
 */
export const takePlace = async () => {
  if (!navigator.locks) return () => {};
  for (let place = 0; place < PLACES; place++) {
    const leave = await taken(place);
    if (leave) return leave;
  }
  return null;
};
