/** Finds and reads the pipeline file that a command works on. */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { resolve } from 'node:path';
import { systemReason } from '@penstock/errors';
import { PIPELINE_FILES } from '@penstock/pipeline';
import { FileError } from '../process/errors.ts';
import { printableText } from '../output/printable-text.ts';

/** Far more than a pipeline file may have: the parser refuses it in its own words, and no device is read for ever. */
const READ_BYTES_MAX = 4 * 1024 * 1024;

export interface PipelineFile {
  /** As it is shown: what the user named, or the default's name. */
  readonly name: string;
  readonly text: string;
}

/** `-` is standard input. Throws a FileError that says what to do. */
export async function readPipelineFile(named: string | undefined, cwd: string): Promise<PipelineFile> {
  if (named === '-') return { name: '(standard input)', text: textOf(await readStandardInput()) };
  if (named !== undefined) {
    const bytes = readBounded(resolve(cwd, named), named);
    if (bytes === undefined) throw new FileError(`there is no file ${printableText(named)} here`);
    return { name: named, text: textOf(bytes) };
  }
  for (const name of PIPELINE_FILES) {
    const bytes = readBounded(resolve(cwd, name), name);
    if (bytes !== undefined) return { name, text: textOf(bytes) };
  }
  throw new FileError(
    `there is no ${PIPELINE_FILES.join(', ')} in this folder: name the pipeline file, or go to the folder that has one`,
  );
}

/** At once: there is nothing yet that could go on meanwhile, and each step by a thread is a turn of its own. */
function readBounded(path: string, shown: string): Buffer | undefined {
  try {
    const file = openSync(path, 'r');
    try {
      if (fstatSync(file).isDirectory())
        throw new FileError(`${printableText(shown)} is a folder, not a pipeline file`);
      const chunks: Buffer[] = [];
      let size = 0;
      while (size < READ_BYTES_MAX) {
        const buffer = Buffer.allocUnsafe(64 * 1024);
        const bytesRead = readSync(file, buffer);
        if (bytesRead === 0) break;
        chunks.push(buffer.subarray(0, bytesRead));
        size += bytesRead;
      }
      return Buffer.concat(chunks);
    } finally {
      closeSync(file);
    }
  } catch (error) {
    if (error instanceof FileError) throw error;
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    const why = code === 'EACCES' ? 'you may not read it' : systemReason(error);
    throw new FileError(`cannot read ${printableText(shown)}: ${printableText(why)}`, { cause: error });
  }
}

async function readStandardInput(): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of process.stdin) {
    chunks.push(chunk as Buffer);
    size += (chunk as Buffer).length;
    if (size > READ_BYTES_MAX) break;
  }
  return Buffer.concat(chunks);
}

/** Bytes that are no UTF-8 become U+FFFD, which the parser then points at. */
function textOf(bytes: Buffer): string {
  return bytes.toString('utf8');
}
