/** The bytes of an XML file as text: by the mark at its beginning, by what it says of itself, else as UTF-8. */
import { MalformedReport } from './junit.ts';

/** Where a file says how it is written. */
const HEAD_BYTES = 200;
/** What tools write although XML has no place for it, most often to colour a message. */
// oxlint-disable-next-line no-control-regex -- these characters are what is looked for
const OUTSIDE_XML = /[\0-\x08\x0b\x0c\x0e-\x1f]/g;

/** `head`: the first bytes of the file. @throws MalformedReport */
export function textDecoding(head: Uint8Array): (bytes: Uint8Array, isLast: boolean) => string {
  const decoder = decoderOf(head);
  return (bytes, isLast) => decoder.decode(bytes, { stream: !isLast }).replaceAll(OUTSIDE_XML, '\ufffd');
}

function decoderOf(head: Uint8Array): TextDecoder {
  if (head[0] === 0xff && head[1] === 0xfe) return new TextDecoder('utf-16le');
  if (head[0] === 0xfe && head[1] === 0xff) return new TextDecoder('utf-16be');
  const said = /^\s*<\?xml[^>]*\sencoding\s*=\s*["']([A-Za-z0-9._:-]{1,40})["']/.exec(
    Buffer.from(head.subarray(0, HEAD_BYTES))
      .toString('latin1')
      .replace(/^\u00ef\u00bb\u00bf/, ''),
  )?.[1];
  // A file that says so in bytes is not written in words of two.
  if (said === undefined || /^utf-?16/i.test(said)) return new TextDecoder();
  try {
    return new TextDecoder(said);
  } catch {
    throw new MalformedReport(`line 1: its encoding '${said}' is not known`);
  }
}
