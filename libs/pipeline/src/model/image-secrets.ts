/** The secrets that the images of a stage are pulled with. */
import type { PlaceDefinition } from './place.ts';

/** Names, each once. */
export function imageSecretsOf(place: PlaceDefinition<unknown> | undefined): string[] {
  const images = [place?.image, ...(place?.services ?? []).map(({ image }) => image)];
  return [...new Set(images.flatMap((image) => (image?.secret === undefined ? [] : [image.secret])))];
}
