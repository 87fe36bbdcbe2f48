/** Times in ISO 8601: for many events of the same millisecond the text is made once. */
export function isoTimer(): (milliseconds: number) => string {
  let last = Number.NaN;
  let text = '';
  return (milliseconds) => {
    if (milliseconds !== last) {
      last = milliseconds;
      text = new Date(milliseconds).toISOString();
    }
    return text;
  };
}
