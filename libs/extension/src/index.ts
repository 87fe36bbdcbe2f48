/** Extension packages: what is in them, how they are made, checked, unpacked, kept and signed; and what the registry is asked. */
export { BadKey, BadLock, CacheFull, PackageRefused } from './errors.ts';
export { ExtensionCache } from './extension-cache.ts';
export { inspectPackage, type PackageInfo } from './inspect-package.ts';
export { formatLock, LOCK_NAME, parseLock } from './lock-file.ts';
export { packFolder, type PackedFolder } from './pack-folder.ts';
export { MANIFEST_NAME, PACKAGE_LIMITS } from './package-limits.ts';
export * from './registry-messages.ts';
export { refusalsByUses, refusedFileProblems, resolveByLock, unresolvedOf } from './resolve-uses.ts';
export { generateSigningKeys, isSignedBy, signPackage } from './signatures.ts';
export { unpackPackage } from './unpack-package.ts';
