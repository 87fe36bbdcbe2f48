/**
 * Parts that are read at a time, of half a megabyte each and a third more as text: a question for one is short, and thousands may come at
 * once. The others wait as questions, of which a responder has only so many.
 */
export const PARTS_AT_ONCE = 16;
