/**
 * What the processes of a sandbox may ask of the kernel, as a program that judges each of their system calls. Refused is what
 * builds need not and attacks on kernels begin with: other namespaces, mounts, keys, tracing, BPF, io_uring, raw sockets,
 * terminals that type for somebody else. A call of another machine's numbers ends its process.
 */
import { assemble, type Instruction } from './bpf.ts';
import { CALLS, CLONE3, NEW_NAMESPACES, NEW_TIME, type Architecture } from '../system/system-calls.ts';

/** From linux/seccomp.h; an error's number is added to the second. */
const KILL = 0x80000000;
const ERROR = 0x00050000;
const ALLOW = 0x7fff0000;

const EPERM = 1;
const ENOSYS = 38;
const EAFNOSUPPORT = 97;

/** Offsets in `seccomp_data`. Of each argument the lower half: all that is looked at is an `int` to the kernel. */
const NUMBER = 0;
const MACHINE = 4;
const argument = (index: number): number => 16 + 8 * index;

const AF_UNIX = 1;
const AF_INET = 2;
const AF_INET6 = 10;
const AF_NETLINK = 16;
const SOCK_TYPE_MASK = 0xf;
const SOCK_RAW = 3;
const SOCK_PACKET = 10;
const NETLINK_ROUTE = 0;

const TIOCSTI = 0x5412;
const TIOCLINUX = 0x541c;

/** PER_LINUX and PER_LINUX32, with UNAME26 and without, and the question which it is. */
const PERSONALITIES = [0x0, 0x8, 0x20000, 0x20008, 0xffffffff];

/** Undefined for a machine that it knows no numbers of. */
export function sandboxFilter(architecture: string = process.arch): Uint8Array | undefined {
  return architecture === 'x64' || architecture === 'arm64' ? filterFor(architecture) : undefined;
}

function filterFor(architecture: Architecture): Uint8Array {
  const calls = CALLS[architecture];
  const foreign: Instruction[] =
    calls.foreignFrom === undefined
      ? []
      : [{ op: 'atLeast', value: calls.foreignFrom, no: 'own' }, { op: 'return', value: KILL }, label('own')];
  return assemble([
    { op: 'load', offset: MACHINE },
    { op: 'equal', value: calls.audit, yes: 'machine' },
    { op: 'return', value: KILL },
    label('machine'),
    { op: 'load', offset: NUMBER },
    ...foreign,
    ...Object.values(calls.refused).flatMap((number) => refuse(number, EPERM)),
    // Its caller tries `clone` next.
    ...refuse(CLONE3, ENOSYS),
    ...judge(calls.clone, [{ op: 'load', offset: argument(0) }, ...refuseBits(NEW_NAMESPACES)]),
    ...judge(calls.unshare, [{ op: 'load', offset: argument(0) }, ...refuseBits(NEW_NAMESPACES | NEW_TIME)]),
    ...judge(calls.ioctl, [
      { op: 'load', offset: argument(1) },
      { op: 'equal', value: TIOCSTI, yes: 'typing' },
      { op: 'equal', value: TIOCLINUX, no: 'silent' },
      label('typing'),
      { op: 'return', value: ERROR | EPERM },
      label('silent'),
    ]),
    ...judge(calls.personality, [
      { op: 'load', offset: argument(0) },
      ...PERSONALITIES.map((value): Instruction => ({ op: 'equal', value, yes: 'usual' })),
      { op: 'return', value: ERROR | EPERM },
      label('usual'),
    ]),
    ...judge(calls.socket, socketRules()),
    { op: 'return', value: ALLOW },
  ]);
}

function socketRules(): Instruction[] {
  return [
    { op: 'load', offset: argument(0) },
    { op: 'equal', value: AF_UNIX, yes: 'socket' },
    { op: 'equal', value: AF_INET, yes: 'internet' },
    { op: 'equal', value: AF_INET6, yes: 'internet' },
    { op: 'equal', value: AF_NETLINK, yes: 'netlink' },
    { op: 'return', value: ERROR | EAFNOSUPPORT },
    label('netlink'),
    { op: 'load', offset: argument(2) },
    { op: 'equal', value: NETLINK_ROUTE, yes: 'socket' },
    { op: 'return', value: ERROR | EPERM },
    label('internet'),
    { op: 'load', offset: argument(1) },
    { op: 'and', value: SOCK_TYPE_MASK },
    { op: 'equal', value: SOCK_RAW, yes: 'raw' },
    { op: 'equal', value: SOCK_PACKET, no: 'socket' },
    label('raw'),
    { op: 'return', value: ERROR | EPERM },
    label('socket'),
  ];
}

/** With the call's number in the accumulator, and again where it is another one. */
function refuse(call: number, error: number): Instruction[] {
  const other = `not ${call}`;
  return [{ op: 'equal', value: call, no: other }, { op: 'return', value: ERROR | error }, label(other)];
}

/** What none of the rules refuses is allowed. */
function judge(call: number, rules: readonly Instruction[]): Instruction[] {
  const other = `not ${call}`;
  return [{ op: 'equal', value: call, no: other }, ...rules, { op: 'return', value: ALLOW }, label(other)];
}

function refuseBits(bits: number): Instruction[] {
  const without = `without ${bits}`;
  return [{ op: 'hasBits', value: bits, no: without }, { op: 'return', value: ERROR | EPERM }, label(without)];
}

function label(name: string): Instruction {
  return { op: 'label', name };
}
