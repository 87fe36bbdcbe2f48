/** What a variable's text can mean: each kind turns text into a value, or says what was expected and how to write it. */
import { isIP } from 'node:net';

export interface Kind<T> {
  /** For the table: `1 to 300`, `host:port`. */
  readonly form: string;
  /** Text is trimmed and not empty. */
  parse(text: string): { readonly value: T } | { readonly problem: string };
}

export interface ListenAddress {
  /** Without the brackets of an IPv6 address. */
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
}

export function text(form = 'text'): Kind<string> {
  return { form, parse: (value) => ({ value }) };
}

export function integer(bounds: { readonly min: number; readonly max: number }): Kind<number> {
  const form = `${bounds.min} to ${bounds.max}`;
  return {
    form,
    parse(given) {
      const value = Number(given);
      if (!/^-?\d+$/.test(given) || value < bounds.min || value > bounds.max)
        return { problem: `is to be a whole number from ${form}` };
      return { value };
    },
  };
}

/** P9: partitions come from the top bits of a hash. */
export function powerOfTwo(max: number): Kind<number> {
  const form = `a power of two, 1 to ${max}`;
  return {
    form,
    parse(given) {
      const value = Number(given);
      if (!/^\d+$/.test(given) || value < 1 || value > max || !Number.isInteger(Math.log2(value)))
        return { problem: `is to be ${form}` };
      return { value };
    },
  };
}

const UNITS_MS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Milliseconds from `90s`, `10m`, `1h30m`, `2d`. A number without a unit is seconds, as in the variables that end in `_SECS`. */
export function duration(bounds: { readonly minMs: number; readonly maxMs: number }): Kind<number> {
  const form = `${durationText(bounds.minMs)} to ${durationText(bounds.maxMs)}`;
  return {
    form,
    parse(text) {
      const given = /^\d+$/.test(text) ? `${text}s` : text;
      if (!/^(?:\d+(?:ms|[smhd]))+$/.test(given)) return { problem: 'is to be a duration such as 90s, 10m or 24h' };
      const value = [...given.matchAll(/(\d+)(ms|[smhd])/g)].reduce(
        (sum, [, count, unit]) => sum + Number(count) * (UNITS_MS[unit ?? ''] ?? 0),
        0,
      );
      if (value < bounds.minMs || value > bounds.maxMs) return { problem: `is to be ${form}` };
      return { value };
    },
  };
}

/** A duration that is no variable. `problem`: a clause about what was given. */
export function parseDuration(
  text: string,
  bounds: { readonly minMs: number; readonly maxMs: number },
): ReturnType<Kind<number>['parse']> {
  return duration(bounds).parse(text);
}

export function durationText(ms: number): string {
  for (const unit of ['d', 'h', 'm', 's']) {
    const unitMs = UNITS_MS[unit] ?? 1;
    if (ms >= unitMs && ms % unitMs === 0 && (unit !== 'd' || ms > unitMs)) return `${ms / unitMs}${unit}`;
  }
  return `${ms}ms`;
}

/** Separated by commas; blanks around them do not count, and empty items neither. */
export function list<T>(item: Kind<T>, itemsMax = 100): Kind<readonly T[]> {
  return {
    form: `${item.form}, separated by commas`,
    parse(given) {
      const values: T[] = [];
      for (const part of given
        .split(',')
        .map((each) => each.trim())
        .filter((each) => each !== '')) {
        const parsed = item.parse(part);
        if ('problem' in parsed) return { problem: `has the item '${part}', which ${parsed.problem}` };
        values.push(parsed.value);
      }
      return values.length > itemsMax
        ? { problem: `has ${values.length} items; ${itemsMax} are allowed` }
        : { value: values };
    },
  };
}

export function boolean(): Kind<boolean> {
  return {
    form: '`true` or `false`',
    parse(given) {
      if (/^(?:true|1|yes|on)$/i.test(given)) return { value: true };
      if (/^(?:false|0|no|off)$/i.test(given)) return { value: false };
      return { problem: 'is to be true or false' };
    },
  };
}

export function choice<const T extends string>(...values: readonly T[]): Kind<T> {
  const form = values.map((value) => `\`${value}\``).join(', ');
  return {
    form,
    parse(given) {
      const value = values.find((each) => each === given.toLowerCase());
      return value === undefined ? { problem: `is to be one of ${values.join(', ')}` } : { value };
    },
  };
}

/** `127.0.0.1:8080`, `[::1]:8080`, `:8080` (every address), `8080` (loopback). */
export function listenAddress(): Kind<ListenAddress> {
  return {
    form: 'host:port',
    parse(given) {
      const [, ipv6, name, portText] = /^(?:(?:\[([0-9a-f:.%]+)\]|([^\s:[\]/]*)):)?(\d{1,5})$/i.exec(given) ?? [];
      const port = Number(portText);
      if (portText === undefined || port > 65_535)
        return { problem: 'is to be an address such as 127.0.0.1:8080 or [::1]:8080, without a scheme' };
      return { value: { host: ipv6 ?? (name === undefined ? '127.0.0.1' : name === '' ? '0.0.0.0' : name), port } };
    },
  };
}

/** An absolute URL of one of these schemes (`http:`), as it was written, without a slash at its end. */
export function url(...schemes: readonly string[]): Kind<string> {
  return {
    form: `URL (${schemes.map((scheme) => `\`${scheme}//…\``).join(', ')})`,
    parse(given) {
      if (!URL.canParse(given) || !schemes.includes(new URL(given).protocol))
        return { problem: `is to be a URL that begins with ${schemes.map((scheme) => `${scheme}//`).join(' or ')}` };
      return { value: given.replace(/\/+$/, '') };
    },
  };
}

/** What a browser sends as `Origin`: scheme, host, port, and nothing behind. */
export function origin(): Kind<string> {
  return {
    form: 'origin (`https://app.example`)',
    parse(given) {
      if (!URL.canParse(given) || !/^https?:$/.test(new URL(given).protocol))
        return { problem: 'is to be an origin such as https://app.example' };
      const value = new URL(given).origin;
      return value === given.toLowerCase().replace(/\/$/, '')
        ? { value }
        : { problem: `is to be an origin, that is ${value}` };
    },
  };
}

/** `10.0.0.1`, `10.0.0.0/8`, `::1`, `fd00::/8`, as it was written. */
export function addressRange(): Kind<string> {
  return {
    form: 'address or CIDR range',
    parse(given) {
      const [, address = '', bits] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(given) ?? [];
      const family = isIP(address);
      const isRange = family !== 0 && Number(bits ?? 0) <= (family === 4 ? 32 : 128);
      return isRange
        ? { value: given }
        : { problem: 'is to be an address or a range such as 10.0.0.1, 10.0.0.0/8 or fd00::/8' };
    },
  };
}

/** `mongodb://…`, `mongodb+srv://…` or `sqlite:<path>`. */
export function storeUrl(): Kind<
  { readonly kind: 'sqlite'; readonly path: string } | { readonly kind: 'mongodb'; readonly url: string }
> {
  return {
    form: '`sqlite:<path>` or `mongodb://…`',
    parse(given) {
      if (/^sqlite:./.test(given))
        return { value: { kind: 'sqlite', path: given.slice('sqlite:'.length).replace(/^\/\/(?=\/)/, '') } };
      if (/^mongodb(?:\+srv)?:\/\/./.test(given)) return { value: { kind: 'mongodb', url: given } };
      return { problem: 'is to be sqlite:<path of a file> or mongodb://…' };
    },
  };
}

const KEY_FORM = '32 bytes in base64';
const KEY_REMEDY = 'make one with: openssl rand -base64 32';

export function secretKey(): Kind<string> {
  return {
    form: KEY_FORM,
    parse: (value) => (isKey(value) ? { value } : { problem: `is to be ${KEY_FORM}; ${KEY_REMEDY}` }),
  };
}

/** No part is named in a problem: it would be a key that was written a little wrong. */
export function secretKeys(): Kind<readonly string[]> {
  const form = `${KEY_FORM}, or several of these separated by commas`;
  return {
    form,
    parse(given) {
      const parts = given.split(',').map((part) => part.trim());
      return parts.every(isKey) ? { value: parts } : { problem: `is to be ${form}; ${KEY_REMEDY}` };
    },
  };
}

function isKey(text: string): boolean {
  return /^[A-Za-z0-9+/_-]{43}=?$/.test(text);
}

/** Numbers of users, first and last; null for `off`. */
/** Names of variables of this process that stages are given. Nobody repeats what was written: behind a `=` stands a password, maybe. */
export function lentVariables(): Kind<readonly string[]> {
  const form = `up to ${LENT_MAX} names of variables, without values, and none of Penstock's own, separated by commas`;
  return {
    form,
    parse(given) {
      const names = given
        .split(',')
        .map((each) => each.trim())
        .filter((each) => each !== '');
      const areNames = names.every((name) => /^[A-Za-z_][A-Za-z0-9_]{0,255}$/.test(name) && !NEVER_LENT.test(name));
      return areNames && names.length <= LENT_MAX ? { value: [...new Set(names)] } : { problem: `is to be ${form}` };
    },
  };
}

const LENT_MAX = 100;
/** Settings and secrets of a server, and what each executor sets by itself. */
const NEVER_LENT = /^(?:SERVICE_.*|PENSTOCK.*|GIT_HOST_.*|JWT_SECRET.*|TRACEPARENT|HOME|PATH)$/;

export function uidRange(): Kind<{ readonly first: number; readonly last: number } | null> {
  return {
    form: '`<first>-<last>` or `off`',
    parse: (value) => {
      if (value === 'off') return { value: null };
      const [, first, last] = /^(\d{4,10})-(\d{4,10})$/.exec(value)?.map(Number) ?? [];
      const isRange = first !== undefined && last !== undefined && first >= UID_MIN && first <= last && last <= UID_MAX;
      return isRange
        ? { value: { first, last } }
        : { problem: `is to be two numbers of users such as 200000-265535, from ${UID_MIN} on, or off` };
    },
  };
}

/** Below are the system's own users and the people's. */
const UID_MIN = 10_000;
/** The last number means nobody. */
const UID_MAX = 4_294_967_293;
