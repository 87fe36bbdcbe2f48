/**
 * Gives the memory of bytes back now. Else it waits for the collector, which lets a process that moves many of them grow by more than
 * a hundred megabytes before it looks. Nobody may read them any more; those that share their memory with others are left alone.
 */
export function letGo({ buffer, byteLength }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffer.transfer(0);
}
