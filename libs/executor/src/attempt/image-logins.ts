/** What the images of a stage are pulled with: logins, out of the secrets that they name. */
import type { StageImage, StagePlace } from '../contract/port.ts';

type ImageLogin = NonNullable<StageImage['auth']>;

/** By the names of the secrets; `lacking`: those whose value is no login. */
export function imageLogins(
  names: readonly string[],
  values: ReadonlyMap<string, string>,
): { readonly logins: ReadonlyMap<string, ImageLogin>; readonly lacking: readonly string[] } {
  const logins = new Map<string, ImageLogin>();
  const lacking: string[] = [];
  for (const name of names) {
    const login = loginOf(values.get(name) ?? '');
    if (login === undefined) lacking.push(`the secret ${name} is no login of a registry, which is user:password`);
    else logins.set(name, login);
  }
  return { logins, lacking };
}

/** Undefined: the value is none. */
function loginOf(value: string): ImageLogin | undefined {
  const text = value.trim();
  const at = text.indexOf(':');
  if (at < 1 || at === text.length - 1 || /\p{Cc}/u.test(text)) return undefined;
  return { username: text.slice(0, at), password: text.slice(at + 1) };
}

/** The place with the login that each of its images asks for. */
export function withLogins(
  place: StagePlace | undefined,
  logins: ReadonlyMap<string, ImageLogin>,
): StagePlace | undefined {
  if (place === undefined || logins.size === 0) return place;
  const withLogin = (image: StageImage & { readonly secret?: string | undefined }): StageImage => {
    const { secret, ...rest } = image;
    const auth = secret === undefined ? undefined : logins.get(secret);
    return auth === undefined ? rest : { ...rest, auth };
  };
  return {
    ...place,
    ...(place.image === undefined ? {} : { image: withLogin(place.image) }),
    ...(place.services === undefined
      ? {}
      : { services: place.services.map((service) => ({ ...service, image: withLogin(service.image) })) }),
  };
}
