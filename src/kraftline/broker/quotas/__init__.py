"""What clients may use of a broker in a time, and what becomes of those who use more."""

from kraftline.broker.quotas.client_quotas import ClientQuotas

__all__ = ["ClientQuotas"]
