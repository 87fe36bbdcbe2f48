/**
 * An assembler for the programs by which the kernel judges system calls (seccomp): classic BPF of the few instructions that
 * such programs need, with labels in the place of distances.
 */

/** Of the conditions a missing side goes on with the next instruction. */
export type Instruction =
  | { readonly op: 'label'; readonly name: string }
  /** A word of what is judged (`seccomp_data`), by its offset, into the accumulator. */
  | { readonly op: 'load'; readonly offset: number }
  | { readonly op: 'and'; readonly value: number }
  | {
      readonly op: 'equal' | 'atLeast' | 'hasBits';
      readonly value: number;
      readonly yes?: string | undefined;
      readonly no?: string | undefined;
    }
  | { readonly op: 'return'; readonly value: number };

/** From linux/bpf_common.h. */
const CODES = {
  load: 0x20, // BPF_LD | BPF_W | BPF_ABS
  and: 0x54, // BPF_ALU | BPF_AND | BPF_K
  equal: 0x15, // BPF_JMP | BPF_JEQ | BPF_K
  atLeast: 0x35, // BPF_JMP | BPF_JGE | BPF_K
  hasBits: 0x45, // BPF_JMP | BPF_JSET | BPF_K
  return: 0x06, // BPF_RET | BPF_K
} as const;

const INSTRUCTION_BYTES = 8;
const DISTANCE_MAX = 255;

/** For a machine of little-endian numbers. Throws RangeError for a label that is not ahead, or too far. */
export function assemble(program: readonly Instruction[]): Uint8Array {
  const addresses = new Map<string, number>();
  const instructions: Exclude<Instruction, { op: 'label' }>[] = [];
  for (const instruction of program) {
    if (instruction.op === 'label') addresses.set(instruction.name, instructions.length);
    else instructions.push(instruction);
  }
  const distance = (from: number, label: string | undefined): number => {
    if (label === undefined) return 0;
    const ahead = (addresses.get(label) ?? Number.NaN) - from - 1;
    if (!(ahead >= 0 && ahead <= DISTANCE_MAX)) throw new RangeError(`no way to the label ${label}`);
    return ahead;
  };
  const bytes = Buffer.alloc(instructions.length * INSTRUCTION_BYTES);
  for (const [index, instruction] of instructions.entries()) {
    const at = index * INSTRUCTION_BYTES;
    bytes.writeUInt16LE(CODES[instruction.op], at);
    if ('yes' in instruction || 'no' in instruction) {
      bytes.writeUInt8(distance(index, instruction.yes), at + 2);
      bytes.writeUInt8(distance(index, instruction.no), at + 3);
    }
    bytes.writeUInt32LE(instruction.op === 'load' ? instruction.offset : instruction.value, at + 4);
  }
  return bytes;
}
