/** What a package says of itself, read without writing anything. */
import {
  diagnosticLine,
  parseManifest,
  PIPELINE_LIMITS,
  type ExtensionManifest,
  type ManifestResult,
} from '@penstock/pipeline';
import { PackageRefused } from './errors.ts';
import { MANIFEST_NAME, PACKAGE_LIMITS } from './package-limits.ts';
import { readPackage, type PackageEntry, type PackageFigures } from './read-package.ts';

export interface PackageInfo extends PackageFigures {
  readonly manifest: ExtensionManifest;
  /** `extension.yaml` as it is. */
  readonly manifestText: string;
  /** `README.md` and `CHANGELOG.md` at the root, in any case of letters; null where there is none. */
  readonly readme: string | null;
  readonly changelog: string | null;
}

const TEXTS: ReadonlyMap<string, { readonly key: 'manifest' | 'readme' | 'changelog'; readonly bytesMax: number }> =
  new Map([
    [MANIFEST_NAME, { key: 'manifest', bytesMax: PIPELINE_LIMITS.manifestBytesMax }],
    ['readme.md', { key: 'readme', bytesMax: PACKAGE_LIMITS.readmeBytesMax }],
    ['changelog.md', { key: 'changelog', bytesMax: PACKAGE_LIMITS.changelogBytesMax }],
  ]);

/**
 * Throws PackageRefused for what is no sound package, and what the stream itself throws. `read`: as `parseManifest`, elsewhere than on this
 * thread, which the manifest of a stranger holds for a tenth of a second and more; throws what it throws.
 */
export async function inspectPackage(
  bytes: AsyncIterable<Uint8Array>,
  read: (manifest: string) => ManifestResult | Promise<ManifestResult> = parseManifest,
): Promise<PackageInfo> {
  const texts = new Map<string, string>();
  const figures = await readPackage(bytes, async (entry) => {
    const wanted = TEXTS.get(entry.path === MANIFEST_NAME ? entry.path : entry.path.toLowerCase());
    if (wanted === undefined || entry.isFolder || (wanted.key === 'manifest' && entry.path !== MANIFEST_NAME)) return;
    texts.set(wanted.key, await readText(entry, wanted.bytesMax));
  });
  const manifestText = texts.get('manifest');
  return {
    ...figures,
    manifest: await manifestOf(manifestText, read),
    manifestText: manifestText ?? '',
    readme: texts.get('readme') ?? null,
    changelog: texts.get('changelog') ?? null,
  };
}

async function readText(entry: PackageEntry, bytesMax: number): Promise<string> {
  if (entry.size > bytesMax)
    throw new PackageRefused('bytes', `'${entry.path}' of the package is larger than ${bytesMax / 1024} KiB`);
  const chunks: Uint8Array[] = [];
  for await (const chunk of entry.chunks) chunks.push(chunk);
  const bytes = Buffer.concat(chunks);
  const text = bytes.toString('utf8');
  if (!Buffer.from(text, 'utf8').equals(bytes))
    throw new PackageRefused('name', `'${entry.path}' of the package is not UTF-8`);
  return text;
}

async function manifestOf(
  text: string | undefined,
  read: (manifest: string) => ManifestResult | Promise<ManifestResult>,
): Promise<ExtensionManifest> {
  if (text === undefined) throw new PackageRefused('manifest', `the package has no ${MANIFEST_NAME} at its root`);
  const parsed = await read(text);
  if (parsed.ok) return parsed.manifest;
  throw new PackageRefused(
    'manifest',
    `${MANIFEST_NAME} is refused:\n${parsed.diagnostics.map(diagnosticLine).join('\n')}`,
  );
}
