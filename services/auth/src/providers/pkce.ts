/** PKCE (RFC 7636), method S256. */
import { createHash } from 'node:crypto';

export function hashedVerifier(verifier: string): string {
  return createHash('sha256').update(verifier).digest('base64url');
}
