"""Who may do what: principals, and the rules that ACLs make."""

from kraftline.broker.authorization.authorizer import Authorizer
from kraftline.broker.authorization.principal import ANONYMOUS, Principal

__all__ = ["ANONYMOUS", "Authorizer", "Principal"]
