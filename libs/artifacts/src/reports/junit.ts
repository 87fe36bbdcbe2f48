/**
 * Reads the XML of JUnit as it comes, in pieces: what test tools of all languages write, each a little differently. It keeps no
 * more of a file than the test that it is in. There is no schema that all of them keep to, so elements that are not known are
 * passed over.
 *
 *  JUNIT-1 A file with a DTD is refused, and with it every entity but XML's own five: nothing grows, and nothing is fetched.
 */
import sax from 'sax';
import {
  DURATION_SECS_MAX,
  isDuration,
  MARGIN_LENGTH,
  MESSAGE_LENGTH_MAX,
  NAME_LENGTH_MAX,
  shortened,
  type TestCase,
  type TestStatus,
} from './test-case.ts';

/** A file that cannot be read as a report. The message says why, and where. */
export class MalformedReport extends Error {}

/** Suites within suites, and what tools put into their tests. */
const DEPTH_MAX = 100;
/** Of one attribute: a message may hold all that a test has printed. */
const ATTRIBUTE_LENGTH_MAX = 4 * 1024 * 1024;
const ROOTS: ReadonlySet<string> = new Set(['testsuites', 'testsuite', 'testcase']);
/** The elements that say why a test did not pass. */
const VERDICTS: ReadonlyMap<string, TestStatus> = new Map([
  ['failure', 'failed'],
  ['error', 'failed'],
  ['skipped', 'skipped'],
]);
/** Of `status` and `result`, where a tool says it there. */
const SKIPPED_WORDS: ReadonlySet<string> = new Set(['skipped', 'disabled', 'notrun', 'suppressed', 'ignored']);

interface OpenCase {
  readonly name: string;
  readonly className: string | undefined;
  readonly durationSecs: number;
  /** How deep it stands. */
  readonly depth: number;
  status: TestStatus;
  message: string;
}

type Attributes = Readonly<Record<string, string>>;

export class JUnitReader {
  readonly #parser: sax.SAXParser;
  readonly #onCase: (testCase: TestCase) => void;
  readonly #suites: string[] = [];
  #depth = 0;
  #hasRoot = false;
  #case: OpenCase | undefined;
  /** Collects the text of the verdict that is open. */
  #isInVerdict = false;
  #text = '';

  constructor(onCase: (testCase: TestCase) => void) {
    this.#onCase = onCase;
    Object.assign(sax, { MAX_BUFFER_LENGTH: ATTRIBUTE_LENGTH_MAX });
    const options = { strictEntities: true, position: true };
    const parser = sax.parser(true, options);
    this.#parser = parser;
    parser.onerror = (error) => {
      throw this.#fault(error.message.split('\n')[0] ?? 'it is no XML');
    };
    parser.ondoctype = () => {
      throw this.#fault('it has a DTD, and those are not read');
    };
    parser.onopentag = ({ name, attributes }) => this.#open(localName(name), attributes as Attributes);
    parser.onclosetag = (name) => this.#close(localName(name));
    parser.ontext = (text) => this.#take(text);
    parser.oncdata = (text) => this.#take(text);
  }

  /** @throws MalformedReport */
  write(text: string): void {
    this.#parser.write(text);
  }

  /** @throws MalformedReport */
  end(): void {
    if (!this.#hasRoot) throw this.#fault('it has no element');
    this.#parser.close();
  }

  #open(name: string, attributes: Attributes): void {
    this.#depth += 1;
    this.#hasRoot = true;
    if (this.#depth > DEPTH_MAX) throw this.#fault(`its elements are more than ${DEPTH_MAX} deep`);
    if (this.#depth === 1 && !ROOTS.has(name))
      throw this.#fault(`it is no report of JUnit: it begins with <${shortened(name, 50)}>`);
    if (name === 'testsuite' || name === 'testsuites') {
      const own = name === 'testsuite' ? textOf(attributes, 'name') : '';
      this.#suites.push(own === '' ? (this.#suites.at(-1) ?? '') : own);
    } else if (name === 'testcase' && this.#case === undefined) this.#case = this.#caseOf(attributes);
    else if (this.#case !== undefined) this.#openVerdict(this.#case, name, attributes);
  }

  #caseOf(attributes: Attributes): OpenCase {
    const className = textOf(attributes, 'classname');
    const words = [textOf(attributes, 'status'), textOf(attributes, 'result')];
    return {
      name: textOf(attributes, 'name'),
      className: className === '' ? undefined : className,
      durationSecs: secondsOf(attributes),
      depth: this.#depth,
      status: words.some((word) => SKIPPED_WORDS.has(word.toLowerCase())) ? 'skipped' : 'passed',
      message: '',
    };
  }

  /** The first one counts, but a failure more than that the test was skipped. */
  #openVerdict(open: OpenCase, name: string, attributes: Attributes): void {
    const verdict = VERDICTS.get(name);
    if (verdict === undefined || this.#depth !== open.depth + 1 || open.status === 'failed') return;
    open.status = verdict;
    open.message = textOf(attributes, 'message', MESSAGE_LENGTH_MAX);
    this.#isInVerdict = open.message === '';
    this.#text = '';
  }

  #take(text: string): void {
    if (this.#isInVerdict)
      this.#text += text.slice(0, Math.max(0, MESSAGE_LENGTH_MAX + MARGIN_LENGTH - this.#text.length));
  }

  #close(name: string): void {
    const open = this.#case;
    if (open !== undefined && this.#isInVerdict && this.#depth === open.depth + 1) {
      open.message = this.#text.trim();
      this.#isInVerdict = false;
    }
    if (open?.depth === this.#depth) this.#finish(open);
    if (name === 'testsuite' || name === 'testsuites') this.#suites.pop();
    this.#depth -= 1;
  }

  #finish({ name, className, status, durationSecs, message }: OpenCase): void {
    this.#case = undefined;
    const suite = this.#suites.at(-1) ?? '';
    this.#onCase({
      suite: suite === '' ? (className ?? '') : suite,
      ...(className === undefined ? {} : { className }),
      name,
      status,
      durationSecs,
      ...(message === '' ? {} : { message }),
    });
  }

  #fault(why: string): MalformedReport {
    return new MalformedReport(`line ${this.#parser.line + 1}: ${shortened(why, 200)}`);
  }
}

function localName(name: string): string {
  return name.slice(name.indexOf(':') + 1);
}

function textOf(attributes: Attributes, name: string, lengthMax = NAME_LENGTH_MAX): string {
  return Object.hasOwn(attributes, name) ? (attributes[name]?.trim().slice(0, lengthMax + MARGIN_LENGTH) ?? '') : '';
}

/** Some tools part thousands by commas. What is no time is none. */
function secondsOf(attributes: Attributes): number {
  const seconds = Number(textOf(attributes, 'time').replaceAll(',', ''));
  return isDuration(seconds) ? seconds : Math.min(Math.max(0, seconds || 0), DURATION_SECS_MAX);
}
