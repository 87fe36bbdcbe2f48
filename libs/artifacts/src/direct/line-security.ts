/**
 * What a straight connection for bytes is made with: TLS whose two ends know each other by the key of a ticket, which came by the
 * broker. So there is no certificate to hand out, and whoever has no ticket gets no further than the handshake.
 */
export const LINE_TLS = {
  minVersion: 'TLSv1.3',
  maxVersion: 'TLSv1.3',
  // The suite whose hash the protocol takes for keys that are agreed on elsewhere.
  ciphers: 'TLS_AES_128_GCM_SHA256',
} as const;

export const LINE_KEY_BYTES = 32;
/** Neither end waits longer for the other: of bytes, or of the disk that takes the last of them. */
export const LINE_IDLE_MS_MAX = 60_000;
