/** Who should own what: rendezvous hashing, so that a member's coming or going moves only its own share. */

/** The member with the highest score for the partition; undefined where there is no member. */
export function ownerOf(partition: number, members: Iterable<string>): string | undefined {
  let best: string | undefined;
  let bestScore = -1;
  for (const member of members) {
    const score = scoreOf(`${member}/${partition}`);
    if (score > bestScore || (score === bestScore && best !== undefined && member > best)) {
      best = member;
      bestScore = score;
    }
  }
  return best;
}

/** FNV-1a with a final mix: nearby names must not have nearby scores. */
function scoreOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
