import { join } from 'node:path';
import { tmpdir } from 'node:os';
import { expect, it } from 'vitest';
import { tunnelFault } from '../src/sandbox/probe.ts';

it('a device for tunnels that is missing, or that this user may not open, is told with the remedy', () => {
  const missing = join(tmpdir(), 'no-such-device');
  expect(tunnelFault(missing)).toBe(`there is no ${missing} here (load the kernel module tun)`);
  // A folder opens for writing for nobody, root included.
  expect(tunnelFault(tmpdir())).toBe(
    `this user may not open ${tmpdir()}, which the network of stages needs (as root: chmod 666 ${tmpdir()})`,
  );
  expect(tunnelFault('/dev/null')).toBeNull();
});
